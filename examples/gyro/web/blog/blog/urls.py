"""The URLs of the microblog."""

from __future__ import annotations

from django.urls import path

from blog import views

urlpatterns = [
    path("", views.front),
    path("authors", views.sign_up),
    path("authors/<int:author>", views.profile),
    path("profile", views.change_profile),
    path("authors/<int:author>/drafts/new", views.write),
    path("authors/<int:author>/drafts", views.drafts),
    path("authors/<int:author>/drafts/<int:draft>/discard", views.discard),
    path("authors/<int:author>/drafts/<int:draft>/publish", views.publish),
]
