"""Distal, the language of paper 002 (Fig. 1 and Fig. 6): parsed, checked, and translated to a Plait model in Python."""
