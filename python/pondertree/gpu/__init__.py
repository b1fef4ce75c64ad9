"""Searches on a GPU.

Concepts, in the order of this package's layers:

- Capability query (`protocol`): a backend (an evaluator or a learned model) answers `supports(job, mode)` and leases a
  `DeviceContext` by `acquire(job)` and `release(context)`. There is one fallback: if the answer is no, or if the first
  output of the network does not fit, the search rolls back the batch under way and goes on batch by batch, where
  outputs of every form are read and errors are detailed.
- Graph cache (`cuda_graph`): the kernels of a network, captured once for each batch size and launched as one graph on a
  stream of its own. Graphs hold addresses: a changed fingerprint of the network, or a moved pool of hidden states,
  clears them.
- Training graphs (`captured_step`) and kernel fusion for cuDNN (`torch_fusion`).
- Inference buffers (`buffer`, `context`): pinned requests and responses of one batch, and the device memory that it is
  unpacked into. Contexts return to a lock-free cache, since finalizers release them.
- Pipeline (`pipeline`): groups of trees with a buffer each. While the device evaluates one group, the engine applies
  responses to another and gathers its next requests.
- Device-resident search (`offload`, `device_trees`, `tree_layout`, `kernels/`): where a search needs nothing but
  simulations, a kernel selects, expands and backs up whole trees on the device, and the CPU reads the results alone.

The life of a batch in the pipeline, and of a tree on the device::

    engine (CPU)                    pinned memory                 device
    exchange(group) --requests--->  u64 [rows, words]    --H2D--> unpack | network | gather legal   (one CUDA graph)
         ^                                                            |
         '----------responses-----  f32 [rows, legal+1]  <--D2H-------'     meanwhile: exchange(other group)
    a learned model:                i64 [rows, 3]        --H2D--> pool[parent] | step | pool[slot]
                                    f32 [rows, columns]  <--D2H-- reward, value, top-k policy

    export_roots -------------->    StagingBuffer        --H2D--> {step kernel | network} x n       (one CUDA graph)
    import_results <-----------     roots                <--D2H--     arrays of all nodes stay
    synchronize() on first access   nodes                <--D2H-------'
"""
