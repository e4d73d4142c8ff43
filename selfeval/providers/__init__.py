"""From a question to its stored reply.

`models` is the registry. `client` chooses who answers, one of the `askers`: computed, counted by
`dry_runs`, or paid, one by one or in `batches`. A paid call (`calls`) goes through `endpoint`, one
provider with its `limits` and its `routes`; `replies` reads what comes back; `store` keeps every
reply, with `leases`, `budget` and `recordings`.
"""
