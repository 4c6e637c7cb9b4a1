"""`python -m launcher` is `trainlaunch`."""

from launcher.cli.main import main

raise SystemExit(main())
