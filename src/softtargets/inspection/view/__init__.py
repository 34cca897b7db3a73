"""Where do models put the examples of three classes, before the last layer?"""

from softtargets.inspection.view.class_names import find_classes, read_names

__all__ = ["find_classes", "read_names"]
