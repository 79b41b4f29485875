"""Book: patients get appointments with doctors on days that have to be looked up."""

import random
from typing import Any

from envsched.environments.synthetic import words
from envsched.environments.synthetic.draft import Draft
from envsched.environments.synthetic.family import Entities, Family, Rule, World, rules, tool


class Clinic(World):
    """A clinic that books appointments of patients with doctors."""

    doctors: dict[str, str]
    openings: dict[str, str]
    visits: dict[str, list[str]]
    arrivals: dict[str, bool]
    files: dict[str, str]
    drugs: dict[str, str]
    days: list[str]
    shelf: list[str]

    @tool("search", "doctor", "medic", "nurse", "carer")
    def doctor(self, patient: str) -> str:
        """Say who a patient's own doctor is."""
        if not self._knows(self.doctors, patient):
            return "error: no such patient"
        return self.doctors[patient]

    @tool("search", "opening", "slot", "day", "when")
    def opening(self, doctor: str) -> str:
        """Say on which day a doctor is free."""
        if not self._knows(self.openings, doctor):
            return "error: no such doctor"
        return self.openings[doctor]

    @tool("create", "book", "plan", "arrange", "schedule", noun="day")
    def book(self, patient: str, doctor: str, day: str) -> str:
        """Book a visit of a patient to a doctor on the day when the doctor is free."""
        if not self._knows(self.doctors, patient):
            return "error: no such patient"
        if not self._knows(self.openings, doctor):
            return "error: no such doctor"
        if self.openings[doctor] != day:
            return "error: wrong day"
        if rules.arrival and not self.arrivals[patient]:
            return "error: not ready"
        if rules.filing and self.files.get(patient) != doctor:
            return "error: no file"
        self.visits[patient] = [doctor, day]
        return "ok"

    @tool("update", "ready", "welcome", "greet", "receive", noun="patient", rule="arrival")
    def greet(self, patient: str) -> str:
        """Note that a patient is here, so that a visit can be booked."""
        if not self._knows(self.arrivals, patient):
            return "error: no such patient"
        if self.arrivals[patient]:
            return "error: done before"
        self.arrivals[patient] = True
        return "ok"

    @tool("communicate", "refer", "file", "share", "forward", noun="patient", rule="filing")
    def refer(self, patient: str, doctor: str) -> str:
        """Give a patient's file to a doctor, so that a visit can be booked."""
        if not self._knows(self.doctors, patient):
            return "error: no such patient"
        if not self._knows(self.openings, doctor):
            return "error: no such doctor"
        self.files[patient] = doctor
        return "ok"

    @tool("create", "treat", "cure", "prescribe", "give", noun="patient")
    def treat(self, patient: str, drug: str) -> str:
        """Prescribe something to a patient."""
        if not self._knows(self.doctors, patient):
            return "error: no such patient"
        if not self._knows(self.shelf, drug):
            return "error: no such drug"
        self.drugs[patient] = drug
        return "ok"

    @tool("update", "assign", "change", "set", "name", noun="doctor", optional=True)
    def assign(self, patient: str, doctor: str) -> str:
        """Give a patient another own doctor."""
        if not self._knows(self.doctors, patient):
            return "error: no such patient"
        if not self._knows(self.openings, doctor):
            return "error: no such doctor"
        self.doctors[patient] = doctor
        return "ok"

    @tool("read", "drug", "need", "cares", "remedy")
    def drug(self, patient: str) -> str:
        """Say what a patient gets."""
        if not self._knows(self.drugs, patient):
            return "error: no such patient"
        return self.drugs[patient]


def start(entities: Entities, rng: random.Random) -> dict[str, Any]:
    patients, doctors = entities["patient"], entities["doctor"]
    return {
        "doctors": {patient: rng.choice(doctors) for patient in patients},
        "openings": dict(zip(doctors, rng.sample(entities["day"], len(doctors)), strict=True)),
        "visits": {},
        "arrivals": dict.fromkeys(patients, False),
        "files": {},
        "drugs": {patient: rng.choice(entities["drug"]) for patient in patients},
        "days": entities["day"],
        "shelf": entities["drug"],
    }


def _book(task: Draft, patient: str, doctor: str, day: str) -> None:
    if task.rules["arrival"]:
        task.call("greet", patient=patient)
    if task.rules["filing"]:
        task.call("refer", patient=patient, doctor=doctor)
    task.call("book", patient=patient, doctor=doctor, day=day)


def book(task: Draft) -> None:
    patient, doctor = task.take("patient"), task.pick("doctor")
    day = task.value("openings", doctor)
    _book(task, patient, doctor, day)
    task.say(f"book {patient} a visit to {doctor} on {day}", f"let {patient} see {doctor} on {day}")


def book_free_day(task: Draft) -> None:
    patient, doctor = task.take("patient"), task.pick("doctor")
    day = task.call("opening", doctor=doctor)
    _book(task, patient, doctor, day)
    task.say(f"book {patient} a visit to {doctor}", f"let {patient} see {doctor} on a free day")


def book_own_doctor(task: Draft) -> None:
    patient = task.take("patient")
    doctor = task.call("doctor", patient=patient)
    day = task.call("opening", doctor=doctor)
    _book(task, patient, doctor, day)
    task.say(f"book {patient} a visit to the own doctor", f"let {patient} see the own doctor on a free day")


def treat(task: Draft) -> None:
    patient, drug = task.take("patient"), task.pick("drug")
    task.call("treat", patient=patient, drug=drug)
    task.say(f"prescribe {drug} to {patient}", f"let {patient} get {drug} from now on")


def treat_alike(task: Draft) -> None:
    patient, other = task.take("patient"), task.take("patient")
    drug = task.call("drug", patient=other)
    task.call("treat", patient=patient, drug=drug)
    task.say(f"prescribe to {patient} what {other} gets", f"let {patient} get the same as {other}")


def assign(task: Draft) -> None:
    patient, doctor = task.take("patient"), task.pick("doctor")
    task.call("assign", patient=patient, doctor=doctor)
    task.say(f"make {doctor} the doctor of {patient}", f"let {patient} have {doctor} as own doctor")


def assign_alike(task: Draft) -> None:
    patient, other = task.take("patient"), task.take("patient")
    doctor = task.call("doctor", patient=other)
    task.call("assign", patient=patient, doctor=doctor)
    task.say(f"give {patient} the same doctor as {other}", f"let {patient} have the doctor of {other}")


FAMILY = Family(
    name="clinic",
    template=Clinic,
    entities={
        "patient": (words.PEOPLE, 7),
        "doctor": (words.PEOPLE, 4),
        "day": (words.DAYS, 6),
        "drug": (words.FOODS, 5),
    },
    rules={
        "arrival": Rule("A patient must be received before a visit is booked."),
        "filing": Rule("A doctor must have the patient's file before a visit is booked."),
    },
    arguments={
        "patient": ("patient", "person", "client", "guest"),
        "doctor": ("doctor", "medic", "expert", "nurse"),
        "day": ("day", "date", "time", "slot"),
        "drug": ("drug", "cure", "dose", "remedy"),
    },
    fields={
        "doctors": ("doctors", "medics"),
        "openings": ("openings", "calendar"),
        "visits": ("visits", "bookings"),
        "arrivals": ("arrivals", "presences"),
        "files": ("files", "referrals"),
        "drugs": ("drugs", "remedies"),
        "days": ("days", "dates"),
        "shelf": ("shelf", "pharmacy"),
    },
    start=start,
    subtasks=(book, book_free_day, book_free_day, book_own_doctor, treat, treat_alike, assign, assign_alike),
    sites=("lake", "forest", "north", "south", "island"),
)
