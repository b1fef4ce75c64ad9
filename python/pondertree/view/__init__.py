"""`pondertree view`: a local web page on a running search. Needs the extra `web`, which only `app` and `server` import."""
