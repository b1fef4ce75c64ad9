"""`pondertree view`: a page on this machine that shows a running search. It needs the extra `web`."""
