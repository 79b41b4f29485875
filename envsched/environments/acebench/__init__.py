"""The worlds of ACEBench-Agent (English): a phone with three apps, and an airline.

Classes, start data and every answer are those of the benchmark, since its targets depend on them. Tools that
none of its records offers are left out.
"""
