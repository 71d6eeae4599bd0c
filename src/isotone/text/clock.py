"""English readings of times of the day and of dates."""

from __future__ import annotations

from isotone.text.numbers import cardinal, ordinal, whole, year
from isotone.text.ways import distinct

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
#: Beginnings of the months' names, by which they are abbreviated.
SHORT_MONTHS = {name[:3]: name for name in MONTHS} | {"sept": "september"}

_PAST = {15: ("quarter", "a quarter", "fifteen"), 30: ("half",)}


def time(hour: str, minute: str, second: str = "") -> list[str]:
    """List the readings of a time such as ``9:05``, ``14:30`` or ``1:02:33``, given its digits."""
    hours, minutes = int(hour), int(minute)
    named = cardinal(hours)
    past = f"oh {cardinal(minutes)}" if 0 < minutes < 10 else cardinal(minutes)
    if second:
        tail = f"oh {cardinal(int(second))}" if second[0] == "0" else cardinal(int(second))
        parts = [f"{n} {unit}{'' if n == 'one' else 's'}" for n, unit in _clock_parts(hour, minute, second)]
        return distinct(
            [f"{named} {past} {tail}", " ".join(parts), " and ".join([" ".join(parts[:-1]), parts[-1]])]
        )
    if hours > 24:  # no time, but a verse or a score
        return distinct([f"{named} {past}", f"{named} to {past}", f"{named} {cardinal(minutes)}"])
    if not minutes:
        full = [f"{named} o'clock", named, f"{named} hundred", f"{named} hundred hours"]
        return distinct([*full, f"{named} zero zero", *({0: ["midnight"], 12: ["noon"]}.get(hours) or [])])
    found = [f"{named} {past}", f"{named} {cardinal(minutes)}"]
    if hour[0] == "0" and len(hour) == 2:
        found += [f"zero {found[0]}", f"oh {found[0]}"]
    this, following = (cardinal(h % 12 or 12) for h in (hours, hours + 1))
    if minutes <= 30:
        found += [f"{m} past {this}" for m in _minutes(minutes)]
        found += [f"{m} after {this}" for m in _minutes(minutes)[:1] if minutes < 30]
    if minutes > 30:
        found += [f"{m} to {following}" for m in _minutes(60 - minutes)]
    if hours > 12:
        found.append(f"{this} {past}")
    return distinct([*found, f"{named} to {past}"])


def _clock_parts(hour: str, minute: str, second: str) -> list[tuple[str, str]]:
    rows = ((hour, "hour"), (minute, "minute"), (second, "second"))
    return [(cardinal(int(value)), unit) for value, unit in rows]


def _minutes(number: int) -> list[str]:
    named = cardinal(number)
    return [*_PAST.get(number, ()), *([named, f"{named} minutes"] if number not in _PAST else [])]


def days(text: str) -> list[str]:
    """List the readings of a day of a month, given its digits."""
    rank = ordinal(int(text))
    return [rank, cardinal(int(text)), f"the {rank}"]


def month_day(month: int, day: int) -> list[str]:
    """List the readings of a day of a month in numbers; none where there is no such day."""
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return []
    name, rank = MONTHS[month - 1], ordinal(day)
    return [
        f"{name} {rank}",
        f"the {rank} of {name}",
        f"{name} {cardinal(day)}",
        f"{name} the {rank}",
        f"{rank} of {name}",
    ]


def date(first: str, second: str, last: str, mark: str) -> list[str]:
    """List the readings of a date in numbers.

    Args:
        first, second: Month and day, or day and month.
        last: The year, two or four digits.
        mark: The sign between them; with ``.`` the day comes first.
    """
    a, b = int(first), int(second)
    likely, other = (month_day(a, b), month_day(b, a)) if mark != "." else (month_day(b, a), month_day(a, b))
    days = [*likely[:2], *other[1:2], *likely[2:4], *other[:1]]
    years = year(last)[:3]
    word = {"/": "slash", ".": "dot", "-": "dash"}[mark]
    numbers = [f"{link}".join((whole(str(a))[0], whole(str(b))[0], years[0])) for link in (" ", f" {word} ")]
    found = [*(f"{day} {years[0]}" for day in days), *numbers]
    return distinct([*found, *(f"{day} {some}" for some in years[1:] for day in days[:3])])


def iso_date(years: str, month: str, day: str) -> list[str]:
    """List the readings of a date such as ``2024-05-12``; none where there is no such day."""
    named = month_day(int(month), int(day))
    if not named:
        return []
    spoken = year(years)[:3]
    numbers = " ".join(f"oh {cardinal(int(n))}" if n[0] == "0" else cardinal(int(n)) for n in (month, day))
    found = [f"{some} {spoken[0]}" for some in named[:4]]
    return distinct(
        [
            *found,
            f"{spoken[0]} {named[0]}",
            f"{spoken[0]} {numbers}",
            *(f"{named[0]} {y}" for y in spoken[1:]),
        ]
    )
