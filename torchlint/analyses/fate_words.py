"""Names of functions and methods, grouped by what they do with an argument; read by `fate`."""

from __future__ import annotations

import re

from torchlint.word_set import word_set

FINAL_ATTRIBUTES = word_set("data shape dtype device ndim requires_grad is_cuda is_leaf layout names itemsize nbytes")
FINAL_METHODS = word_set(
    """
    item tolist numpy detach detach_ size dim ndimension numel nelement element_size get_device data_ptr stride
    argmax argmin argsort long int short byte bool nonzero count_nonzero bincount is_contiguous is_floating_point
    eq ne gt ge lt le isnan isinf isfinite logical_and logical_or logical_not logical_xor any all isclose equal allclose
    count index keys format join startswith endswith __len__
    """
)
GRADIENT_METHODS = word_set("backward register_hook retain_grad requires_grad_ register_post_accumulate_grad_hook")
FINAL_FUNCTIONS = word_set(
    """
    builtins.print builtins.len builtins.float builtins.int builtins.str builtins.repr builtins.bool builtins.round
    builtins.isinstance builtins.format builtins.type builtins.id builtins.hash builtins.hasattr builtins.range
    builtins.complex torch.save torch.is_tensor torch.argmax torch.argmin torch.argsort torch.equal torch.allclose
    torch.isnan torch.isinf torch.isfinite torch.eq torch.ne torch.gt torch.ge torch.lt torch.le torch.any torch.all
    torch.isclose torch.numel torch.bincount torch.nonzero torch.count_nonzero torch.zeros_like torch.ones_like
    torch.rand_like torch.randn_like torch.empty_like torch.full_like torchvision.utils.save_image
    torchvision.utils.make_grid torch.distributed.all_reduce torch.distributed.reduce torch.distributed.broadcast
    """
)
PASSING_FUNCTIONS = word_set(
    """
    builtins.sum builtins.max builtins.min builtins.sorted builtins.list builtins.tuple builtins.zip builtins.enumerate
    builtins.reversed builtins.dict builtins.set builtins.iter builtins.next builtins.abs builtins.map builtins.filter
    builtins.pow builtins.divmod builtins.getattr builtins.frozenset collections.deque collections.OrderedDict
    collections.defaultdict copy.copy copy.deepcopy itertools.chain functools.reduce numpy.squeeze numpy.swapaxes
    """
)
READERS = word_set(
    """
    numpy matplotlib seaborn logging wandb json pickle csv pandas sklearn scipy tensorboard tensorboardX mlflow tqdm
    tensorboard_logger os sys math time visdom neptune comet_ml rich PIL cv2 statistics loguru warnings imageio nltk
    plotly skimage gym gymnasium builtins.open
    """
)
LOG_METHODS = word_set(
    """
    add_scalar add_scalars add_histogram add_image add_images add_figure add_text add_embedding log info debug warning
    warn error critical exception set_postfix set_postfix_str set_description set_description_str write writerow
    writerows log_metric log_metrics log_dict log_scalar format join plot savefig line
    """
)
REPORTERS = re.compile(
    r"_*((print|write|display|report|plot|show|dump|save)(_\w*|ln|s)?|early_?stop\w*|record_(loss|metric|epoch|stat|value)\w*"
    r"|log(ger)?|log_(string|msg|message|metric|scalar|dict|loss|epoch|step|image|value|stat|train|val|eval|test|info"
    r"|result|data|line|text|histogram|table)\w*)"
)
ENVIRONMENT = re.compile(r"(^|[._])(env|environment)s?(\[\w+\])?$")
GYM = re.compile(r"^\s*(import|from) (gym|gymnasium)\b", re.MULTILINE)
SEARCHES = word_set("index count remove")
FILLING_ONLY = word_set("append appendleft extend extendleft insert clear remove reverse")
FILLING_METHODS = word_set("append appendleft add extend extendleft insert update setdefault put push put_nowait")
GOING_BACK = re.compile(r"(?i)(^|_)back(ward|prop)")
GRADIENT_PACKAGES = ("torch.autograd.", "torch.func.", "functorch.", "higher.", "captum.")
