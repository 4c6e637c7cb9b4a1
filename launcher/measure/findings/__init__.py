"""What probe can find in a script, one module each, named after its defect: dashes become underscores.

A module has `TL7nn`, the Explanation of its code, and `said(finding)`, which returns the Diagnostic: the fact with both
numbers, the mechanism, and what to type. A finding's place is printed beside it and isn't part of the message.
`said` takes from `finding.facts` what its check in launcher/inside/probe/checks reports.
Adding one: the module, `python -m launcher.cli.codes >docs/codes.md`, and its test in tests/measure/findings.
"""
