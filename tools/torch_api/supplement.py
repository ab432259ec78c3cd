"""What running torch on one CPU cannot tell, by hand, from torch's reference: devices, processes, removed names.

One line per name: the columns that are said here, `column=value`, in place of what was measured.
"""

from __future__ import annotations

_FACTS = """
torch.Tensor                          kind=legacy-tensor result=tensor dtype=float grad=no
torch.nn.ChannelShuffle               result=tensor grad=yes rank=keep flags=parameter-free
torch.nn.CosineSimilarity             result=tensor grad=yes flags=parameter-free
torch.nn.Fold                         result=tensor grad=yes flags=parameter-free
torch.nn.FractionalMaxPool2d          result=tensor|tensor,index grad=yes rank=keep flags=parameter-free,random
torch.nn.FractionalMaxPool3d          result=tensor|tensor,index grad=yes rank=keep flags=parameter-free,random
torch.nn.MaxUnpool1d                  result=tensor grad=yes rank=keep flags=parameter-free
torch.nn.MaxUnpool2d                  result=tensor grad=yes rank=keep flags=parameter-free
torch.nn.MaxUnpool3d                  result=tensor grad=yes rank=keep flags=parameter-free
torch.nn.PairwiseDistance             result=tensor grad=yes flags=parameter-free
torch.nn.Unfold                       result=tensor grad=yes flags=parameter-free
torch.nn.Upsample                     result=tensor grad=yes rank=keep flags=parameter-free
torch.nn.UpsamplingBilinear2d         result=tensor grad=yes rank=keep flags=parameter-free
torch.nn.UpsamplingNearest2d          result=tensor grad=yes rank=keep flags=parameter-free
torch.Tensor.cpu                      flags=may-view,reads
torch.Tensor.numpy                    result=array grad=no flags=reads
torch.Tensor.tolist                   result=list|number grad=no flags=reads
torch.Tensor.__array__                kind=method result=array flags=reads
torch.Tensor.__setitem__              flags=may-reads,writes
torch.Tensor.bfloat16                 flags=may-view
torch.Tensor.byte                     flags=may-view
torch.Tensor.char                     flags=may-view
torch.Tensor.cdouble                  flags=may-view
torch.Tensor.chalf                    flags=may-view
torch.Tensor.half                     flags=may-view
torch.Tensor.int                      flags=may-view
torch.Tensor.short                    flags=may-view
torch.Tensor.to_dense                 flags=may-view
torch.Tensor.type_as                  flags=may-reads,may-view
torch.Tensor.type                     flags=may-reads,may-view
torch.Tensor.bernoulli_               dtype=same
torch.Tensor.new                      rank=
torch.Tensor.cumsum                   dtype=widened
torch.Tensor.cumprod                  dtype=widened
torch.cumsum                          dtype=widened
torch.cumprod                         dtype=widened
torch.Tensor.resize_as_               rank=
torch.resize_as_                      rank=
torch.Tensor.geqrf                    rank=
torch.geqrf                           rank=
torch.Tensor.lu                       dtype= rank=
torch.lu                              dtype= rank=
torch.linalg.svd                      rank=
torch.linalg.eig                      rank=
torch.linalg.eigh                     rank=
torch.linalg.cholesky_ex              rank=
torch.linalg.inv_ex                   rank=
torch.linalg.ldl_factor               rank=
torch.linalg.ldl_factor_ex            rank=
torch.linalg.lstsq                    rank=
torch.linalg.lu_factor                rank=
torch.linalg.lu_factor_ex             rank=
torch.linalg.lu                       grad=yes
torch.linalg.tensorsolve              rank=
torch.linalg.matrix_rank              rank=
torch.linalg.pinv                     rank=
torch.linalg.vecdot                   rank=
torch.combinations                    rank=
torch.cartesian_prod                  rank=
torch.column_stack                    rank=
torch.norm_except_dim                 rank=
torch.nuclear_norm                    rank=
torch.slice_inverse                   rank=
torch.split_copy                      result=
torch.split_with_sizes_copy           result=
torch.unbind_copy                     result=
torch.unravel_index                   result=tensors
torch.view_copy                       dtype=
torch.tensordot                       rank=
torch.Tensor.to_dense                 dtype=
torch.nn.functional.linear            rank=product
torch.nn.functional.alpha_dropout     dtype=
torch.nn.functional.dropout           dtype=
torch.nn.functional.dropout1d         dtype=
torch.nn.functional.dropout2d         dtype=
torch.nn.functional.dropout3d         dtype=
torch.nn.functional.feature_alpha_dropout dtype=
torch.nn.functional.gumbel_softmax    rank=
torch.nn.functional.multilabel_soft_margin_loss  rank=
torch.Tensor.bincount                 dtype= grad=no
torch.Tensor.kron                     rank=broadcast
torch.Tensor.resize_                  rank=
torch.Tensor.set_                     rank=
torch.histogramdd                     rank=
torch.nn.parallel.data_parallel       result=
torch.nn.utils.parameters_to_vector   grad=yes rank=1
torch.nn.utils.get_total_norm         grad=no rank=0
torch.Tensor.sum_to_size              rank=sized
torch.Tensor.quantile                 rank=
torch.Tensor.nanquantile              rank=
torch.Tensor.pinverse                 flags=reads
torch.Tensor.matrix_exp               flags=reads
torch.Tensor.multinomial              flags=random,reads
torch.Tensor.histc                    flags=may-reads
torch.Tensor.index_put_               flags=inplace,may-reads
torch.Tensor.index_put                flags=may-reads
torch.Tensor.to                       dtype= flags=may-reads,may-view
torch.Tensor.norm                     rank=reduce
torch.Tensor.std                      rank=reduce
torch.Tensor.var                      rank=reduce
torch.Tensor.cholesky                 flags=reads
torch.Tensor.svd                      rank= flags=reads
torch.Tensor.unique                   rank= flags=dynamic
torch.Tensor.inner                    rank=
torch.Tensor.cuda                     result=tensor dtype=same grad=yes rank=keep flags=may-view
torch.Tensor.xpu                      result=tensor dtype=same grad=yes rank=keep flags=may-view
torch.Tensor.pin_memory               result=tensor dtype=same rank=keep
torch.Tensor.is_set_to                result=bool
torch.Tensor.get_device               result=int
torch.Tensor.data_ptr                 result=int
torch.Tensor.backward                 result=none
torch.Tensor.record_stream            result=none
torch.Tensor.grad                     result=tensor|none grad=no
torch.Tensor.grad_fn                  result=none|object
torch.from_numpy                      kind=factory result=tensor grad=no flags=view
torch.Tensor.register_hook            result=object
torch.arange                          dtype=
torch.asarray                         dtype= rank= flags=may-view
torch.full                            dtype=
torch.scalar_tensor                   dtype=
torch.as_tensor                       kind=factory result=tensor flags=may-view
torch.frombuffer                      kind=factory result=tensor grad=no flags=view
torch.from_file                       kind=factory result=tensor grad=no
torch.atleast_1d                      result=tensor|tensors
torch.atleast_2d                      result=tensor|tensors
torch.atleast_3d                      result=tensor|tensors
torch.chain_matmul                    result=tensor grad=yes
torch.lobpcg                          result=tensor,tensor grad=yes
torch.pca_lowrank                     result=tensor,tensor,tensor grad=yes flags=random
torch.svd_lowrank                     result=tensor,tensor,tensor grad=yes flags=random
torch.split                           result=tensors
torch.nn.PixelShuffle                 result=tensor grad=yes rank=keep flags=parameter-free
torch.nn.PixelUnshuffle               result=tensor grad=yes rank=keep flags=parameter-free
torch.nn.Sequential                   result= grad= rank= flags=
torch.nn.Unflatten                    result=tensor grad=yes flags=parameter-free
torch.broadcast_tensors               result=tensors dtype=
torch.meshgrid                        result=tensors
torch.einsum                          dtype=same grad=yes
torch.empty_like                      batch=no
torch.cholesky                        flags=reads
torch.svd                             rank= flags=reads
torch.inner                           rank=
torch.norm                            rank=reduce
torch.std                             rank=reduce
torch.var                             rank=reduce
torch.unique                          rank= flags=dynamic
torch.bincount                        dtype= grad=no
torch.kron                            rank=broadcast
torch.quantile                        rank=
torch.nanquantile                     rank=
torch.pinverse                        flags=reads
torch.matrix_exp                      flags=reads
torch.linalg.matrix_exp               flags=reads
torch.multinomial                     flags=random,reads
torch.normal                          dtype= grad=yes rank= flags=may-reads,random
torch.histc                           flags=may-reads
torch.where                           dtype= grad=yes
torch.tensor                          dtype= rank= flags=may-reads
torch.linalg.matrix_norm              flags=may-reads
torch.linalg.norm                     flags=may-reads
torch.save                            flags=may-reads
torch.nn.GRU                          flags=may-random
torch.nn.LSTM                         flags=may-random
torch.nn.RNN                          flags=may-random
torch.nn.MultiheadAttention           flags=may-random
torch.nn.Transformer                  result=tensor grad=yes rank=keep flags=may-random
torch.nn.TransformerDecoder           result=tensor grad=yes rank=keep flags=may-random
torch.nn.TransformerDecoderLayer      flags=may-random
torch.nn.TransformerEncoder           result=tensor grad=yes rank=keep flags=may-random
torch.nn.TransformerEncoderLayer      flags=may-random
torch.nn.Module.cpu                   flags=reads
torch.nn.Module.forward               result=
torch.nn.Module.to                    result=self flags=may-reads
torch.nn.utils.clip_grad_norm         grad=no rank=0 flags=may-reads,writes
torch.nn.utils.clip_grad_norm_        grad=no rank=0 flags=may-reads,writes
torch.nn.utils.clip_grad_value_       flags=writes
torch.amp.GradScaler.get_scale        flags=reads
torch.amp.GradScaler.scale            result=tensor|tensors
torch.amp.GradScaler.state_dict       flags=reads
torch.amp.GradScaler.step             flags=reads
torch.accelerator.synchronize         flags=reads
torch.mps.synchronize                 flags=reads
torch.distributions.Distribution.expand       result=self
torch.distributions.Distribution.rsample      grad=yes flags=random
torch.distributions.Distribution.sample       grad=no flags=random
torch.distributions.Distribution.sample_n     grad=no flags=random
torch.distributions.Distribution.log_prob     grad=yes
torch.distributions.Distribution.entropy      grad=yes
torch.distributions.Distribution.cdf          grad=yes
torch.distributions.Distribution.icdf         grad=yes
torch.distributions.Distribution.perplexity   grad=yes
torch.distributions.kl_divergence     grad=yes
torch.distributed.new_group           result=object
torch.distributed.monitored_barrier   flags=reads
torch.utils.data.random_split         flags=random
torch.utils.checkpoint.checkpoint     grad=yes
torch.nn.functional.one_hot           flags=may-reads
torch.cuda.synchronize                result=none flags=reads
torch.cuda.Event.synchronize          kind=method result=none flags=reads
torch.cuda.Event.elapsed_time         kind=method result=float
torch.cuda.Stream.synchronize         kind=method result=none flags=reads
torch.cuda.empty_cache                result=none flags=reads
torch.cuda.max_memory_allocated       result=int
torch.cuda.memory_allocated           result=int
torch.distributed.all_gather          flags=writes
torch.distributed.all_gather_into_tensor  flags=writes
torch.distributed.all_gather_object   result=none flags=reads,writes
torch.distributed.all_reduce          flags=writes
torch.distributed.all_to_all          flags=writes
torch.distributed.all_to_all_single   flags=writes
torch.distributed.barrier             flags=reads
torch.distributed.broadcast           flags=writes
torch.distributed.broadcast_object_list  result=none flags=reads,writes
torch.distributed.gather              flags=writes
torch.distributed.gather_object       result=none flags=reads,writes
torch.distributed.recv                flags=may-reads,writes
torch.distributed.reduce              flags=writes
torch.distributed.reduce_scatter      flags=writes
torch.distributed.reduce_scatter_tensor  flags=writes
torch.distributed.scatter             flags=writes
torch.distributed.scatter_object_list result=none flags=reads,writes
torch.distributed.send                flags=may-reads
"""
# Gone from the described version, but still called in the code that people have.
_REMOVED = """
torch.Tensor.eig         kind=method result=tensor,tensor grad=yes
torch.Tensor.lstsq       kind=method result=tensor,tensor grad=yes
torch.Tensor.solve       kind=method result=tensor,tensor grad=yes
torch.Tensor.symeig      kind=method result=tensor,tensor grad=yes
torch.eig                kind=function result=tensor,tensor grad=yes
torch.gels               kind=function result=tensor,tensor grad=yes
torch.irfft              kind=function result=tensor grad=yes
torch.lstsq              kind=function result=tensor,tensor grad=yes
torch.matrix_rank        kind=function result=tensor dtype=int64 grad=no
torch.rfft               kind=function result=tensor grad=yes
torch.solve              kind=function result=tensor,tensor grad=yes
torch.symeig             kind=function result=tensor,tensor grad=yes
"""


def supplement() -> dict[str, dict[str, str]]:
    """The columns said by hand, by name; `source` is the flag that says so."""
    said: dict[str, dict[str, str]] = {}
    for text, source in ((_FACTS, "hand"), (_REMOVED, "removed")):
        for line in text.strip().splitlines():
            name, *columns = line.split()
            said[name] = dict(column.split("=", 1) for column in columns) | {"source": source}
    return said
