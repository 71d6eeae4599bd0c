"""Long recordings with their text: divided into sections, which are aligned and judged one after the other."""

from isotone.pipeline.sections.aligning import align_sections

__all__ = ["align_sections"]
