"""The pages of the microblog."""

from __future__ import annotations

import json

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET, require_POST

from blog.models import Author, Draft, Post


@require_POST
def sign_up(request: HttpRequest) -> HttpResponse:
    """A new author, whom the session remembers."""
    author = Author.objects.create(name=request.POST["name"])
    request.session["author"] = author.pk
    return JsonResponse({"id": author.pk}, status=201)


@require_GET
def profile(request: HttpRequest, author: int) -> HttpResponse:
    """The profile of an author."""
    found = get_object_or_404(Author, pk=author)
    return JsonResponse({"name": found.name, "profile": found.profile})


@require_POST
def change_profile(request: HttpRequest) -> HttpResponse:
    """Change the profile of the author of the session."""
    if "author" not in request.session:
        return JsonResponse({"error": "not signed in"}, status=403)
    found = get_object_or_404(Author, pk=request.session["author"])
    found.profile = json.loads(request.body)["profile"]
    found.save(update_fields=["profile"])
    return JsonResponse({"profile": found.profile})


@require_POST
def write(request: HttpRequest, author: int) -> HttpResponse:
    """Write a draft."""
    get_object_or_404(Author, pk=author)
    draft = Draft.objects.create(author_id=author, text=json.loads(request.body)["text"])
    return JsonResponse({"id": draft.pk}, status=201)


@require_GET
def drafts(request: HttpRequest, author: int) -> HttpResponse:
    """The drafts of an author."""
    found = Draft.objects.filter(author_id=author).order_by("pk")
    return JsonResponse({"drafts": [[d.pk, d.text] for d in found]})


@require_POST
def discard(request: HttpRequest, author: int, draft: int) -> HttpResponse:
    """Delete a draft."""
    count, _ = Draft.objects.filter(author_id=author, pk=draft).delete()
    return JsonResponse({"deleted": count})


@require_POST
@transaction.atomic
def publish(request: HttpRequest, author: int, draft: int) -> HttpResponse:
    """Make a draft a post, which everybody sees."""
    found = get_object_or_404(Draft.objects.select_related("author"), author_id=author, pk=draft)
    post = Post.objects.create(author_name=found.author.name, text=found.text)
    Draft.objects.filter(author_id=author, pk=draft).delete()
    if not found.text:
        transaction.set_rollback(True)
        return JsonResponse({"error": "the draft is empty"}, status=409)
    return JsonResponse({"post": post.pk}, status=201)


@require_GET
def front(request: HttpRequest) -> HttpResponse:
    """The newest posts."""
    found = Post.objects.order_by("-published", "pk").values_list("author_name", "text")[:10]
    return JsonResponse({"posts": sorted(map(list, found))})
