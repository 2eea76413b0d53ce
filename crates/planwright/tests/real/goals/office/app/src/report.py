"""Prints the orders."""

VERSION = "1.2.0"


def report(orders):
    # TODO: show the region
    for order in orders:
        print(order["id"], order["total"])
