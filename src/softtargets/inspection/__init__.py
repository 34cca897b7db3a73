"""Files of any model in, one page out. One room for each question: advise, calibrate, compare, translate, view."""
