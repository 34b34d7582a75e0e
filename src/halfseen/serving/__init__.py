"""A model as a server: JSON over HTTP, and a new model file taken in while it runs.

`requests` turns what came over the network into checked fields, or refuses it. `answers` answers checked fields from
one loaded model, without a network. `service` holds the model that answers now, exchanges it for a new one, and lets
requests wait for a thread. `application` is the thin shell around it that speaks HTTP, by Starlette.
"""
