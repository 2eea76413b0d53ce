"""Writes mails to customers."""


def remind(customer):
    # TODO: translate
    return f"Dear {customer}, your invoice is open."
