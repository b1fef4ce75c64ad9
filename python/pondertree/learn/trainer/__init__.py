"""Losses, optimiser steps and reanalysis."""
