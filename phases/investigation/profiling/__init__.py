"""Profiling a table: what its values are like, and which rows are not like the others.

Text search never shows what is wrong in data. Each check here is about tables in general; none
knows the words of a case. A check yields findings; a finding names its rows by an SQL condition.
"""
