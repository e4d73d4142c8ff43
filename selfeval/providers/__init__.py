"""From a question to its stored reply.

`models` is the registry, `client` asks, `endpoint` is one provider with its `limits`, its `routes`
and what its `replies` say; `store` keeps every reply, with `leases`, `budget` and `recordings`.
"""
