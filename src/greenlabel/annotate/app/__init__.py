"""The page's server: Starlette routes around a session, and who may come in. Knows no files and no table."""
