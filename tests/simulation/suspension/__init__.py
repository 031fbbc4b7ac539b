"""Machines that are suspended and resumed while everything that takes part in it may die."""
