"""Schedulers to compare with, one file each."""
