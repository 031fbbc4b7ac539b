"""DataVolumes, and the provisioner of our StorageClass."""

from herder.controllers.volumes.data_volumes import DataVolumes
from herder.controllers.volumes.provisioner import Provisioner
from herder.controllers.volumes.reclaimer import Reclaimer
from herder.controllers.volumes.resizer import Resizer
from herder.controllers.volumes.template_sizes import TemplateSizes

__all__ = ["DataVolumes", "Provisioner", "Reclaimer", "Resizer", "TemplateSizes"]
