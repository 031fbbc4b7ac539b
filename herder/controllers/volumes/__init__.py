"""DataVolumes, and the provisioner of our StorageClass."""

from herder.controllers.volumes.data_volumes import DataVolumes
from herder.controllers.volumes.provisioner import Provisioner
from herder.controllers.volumes.reclaimer import Reclaimer

__all__ = ["DataVolumes", "Provisioner", "Reclaimer"]
