"""`python -m trainlaunch` is `trainlaunch`."""

from trainlaunch.cli.main import main

raise SystemExit(main())
