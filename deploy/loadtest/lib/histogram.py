"""Latencies in buckets of equal relative width, as HdrHistogram has them: two digits are exact from 1 µs to hours."""


class Histogram:
    SUB = 128  # buckets for each doubling: an error of less than one per cent

    def __init__(self):
        self.counts, self.total, self.greatest, self.sum = {}, 0, 0, 0

    def record(self, microseconds):
        value = max(1, int(microseconds))
        shift = max(0, value.bit_length() - self.SUB.bit_length())
        place = (shift, value >> shift)
        self.counts[place] = self.counts.get(place, 0) + 1
        self.total += 1
        self.sum += value
        self.greatest = max(self.greatest, value)

    def add(self, other):
        for place, count in other.counts.items():
            self.counts[place] = self.counts.get(place, 0) + count
        self.total += other.total
        self.sum += other.sum
        self.greatest = max(self.greatest, other.greatest)

    def percentile(self, percent):
        """In milliseconds: no more than so many per cent took longer."""
        wanted, seen = self.total * percent / 100, 0
        for shift, value in sorted(self.counts, key=lambda place: place[1] << place[0]):
            seen += self.counts[shift, value]
            if seen >= wanted:
                return min(((value + 1) << shift) - 1, self.greatest) / 1000
        return 0.0

    def line(self):
        return "  ".join(f"p{p:g} {self.percentile(p):.2f}" for p in (50, 90, 99, 99.9)) + f"  max {self.greatest / 1000:.2f} ms"
