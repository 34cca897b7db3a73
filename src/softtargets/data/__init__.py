"""Datasets: fetch them, check them, read them into memory. Importing this is cheap and needs no torch.

from softtargets.data import load
train = load("cifar10", "train", labels="worse")
"""

from softtargets.data.boxes import Tries
from softtargets.data.catalogue import CATALOGUE
from softtargets.data.cifar import CIFAR10_CLASSES, CIFAR100_FINE, CIFAR100_SUPERCLASS
from softtargets.data.cifar_n import HumanLabels
from softtargets.data.cleaning import CleanedPairs, CleaningReport, clean_pairs
from softtargets.data.corpora import load_pairs
from softtargets.data.decoders import Decoders, Memory, decoders
from softtargets.data.decoding import Decoding, decode_file
from softtargets.data.directory import data_directory, where
from softtargets.data.examples import Examples
from softtargets.data.fetch import fetch
from softtargets.data.files import lines_of, read_lines
from softtargets.data.folders import ImageIndex, decode
from softtargets.data.leaks import LeakReport, leaks
from softtargets.data.own_arrays import arrays_digest, keep_arrays, read_own_arrays
from softtargets.data.own_images import adopt_folder, folder_digest
from softtargets.data.own_text import digest_of, hold_out, keep_text, text_name
from softtargets.data.progress import Patient, Progress
from softtargets.data.reading import image_files, load, load_human_labels
from softtargets.data.remembering import remembered, sixteen_digits
from softtargets.data.text import Pairs, join_pairs, read_parallel, read_tsv
from softtargets.data.verify import status, verify

# `fetch`, `leaks` and `verify` are also the names of modules, as is `decoders`. Importing them here, at once, is what
# makes the functions win whatever is imported later.
__all__ = [
    "CATALOGUE",
    "CIFAR10_CLASSES",
    "CIFAR100_FINE",
    "CIFAR100_SUPERCLASS",
    "CleanedPairs",
    "CleaningReport",
    "Decoders",
    "Decoding",
    "Examples",
    "HumanLabels",
    "ImageIndex",
    "LeakReport",
    "Memory",
    "Pairs",
    "Patient",
    "Progress",
    "Tries",
    "adopt_folder",
    "arrays_digest",
    "clean_pairs",
    "data_directory",
    "decode",
    "decode_file",
    "decoders",
    "digest_of",
    "fetch",
    "folder_digest",
    "hold_out",
    "image_files",
    "join_pairs",
    "keep_arrays",
    "keep_text",
    "leaks",
    "lines_of",
    "load",
    "load_human_labels",
    "load_pairs",
    "read_lines",
    "read_own_arrays",
    "read_parallel",
    "read_tsv",
    "remembered",
    "sixteen_digits",
    "status",
    "text_name",
    "verify",
    "where",
]
