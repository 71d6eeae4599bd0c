"""Files of alignments: reading and writing single files and whole folders."""

from isotone.format.files import FormatError, ManyUtterances, file_name, read, write
from isotone.format.folder import Folder, read_folder

__all__ = ["Folder", "FormatError", "ManyUtterances", "file_name", "read", "read_folder", "write"]
