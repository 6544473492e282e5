"""`python -m moot.kernel`, the command in the kernel's specification."""

from moot.kernel.kernel import main

if __name__ == "__main__":
    main()
