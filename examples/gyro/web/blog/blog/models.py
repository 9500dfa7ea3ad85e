"""The tables of the microblog."""

from __future__ import annotations

from django.db import models


class Author(models.Model):
    """An author with a profile."""

    name = models.CharField(max_length=40)
    profile = models.TextField(default="")


class Draft(models.Model):
    """A text that only its author sees."""

    author = models.ForeignKey(Author, on_delete=models.CASCADE)
    text = models.TextField()


class Post(models.Model):
    """A published text."""

    author_name = models.CharField(max_length=40)
    text = models.TextField()
    published = models.DateTimeField(auto_now_add=True)
