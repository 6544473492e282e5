"""Translating old exchanges with newer converters: computed on the reader thread, stored per run, in addition to the log."""

from moot.store.translating.translations import StoreTranslations

__all__ = ["StoreTranslations"]
