"""YAML, environment and flags become one frozen `Settings`; nothing else of moot reads a configuration.

| file | what it does |
|---|---|
| `settings.py` | the frozen values |
| `schema.py` | the shape of the file (pydantic), strict, with suggestions |
| `loading.py` | layers, `${VAR}`, where each value came from |
"""
