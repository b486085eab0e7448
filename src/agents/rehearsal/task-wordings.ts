/**
 * The kinds of tasks that have their own answers. `other` is a sub-agent's task that does not begin with a known verb.
 */
export type TaskKind =
  | "describe"
  | "explain"
  | "compare"
  | "plan"
  | "write"
  | "summarize"
  | "research"
  | "other";

/** An answer that is true for any subject, because the model knows no facts. */
export interface Wording {
  /**
   * Follows the subject and a colon. Makes sense on its own, because a summary of sub-agents quotes only this sentence.
   */
  readonly lead: string;
  readonly points: readonly string[];
  readonly close?: string;
}

/** The answers for each kind of task. The task's text selects one of them. */
export type TaskWordings = Readonly<Record<TaskKind, readonly Wording[]>>;

export const englishWordings: TaskWordings = {
  describe: [
    {
      lead: "begin with what everyone notices, and end with the detail that stays.",
      points: [
        "**At first glance**: the whole, and where it ends.",
        "**Up close**: two or three details that set it apart.",
        "**Afterwards**: the one thing that a visitor tells a friend.",
      ],
    },
    {
      lead: "three short views say more than one long look.",
      points: [
        "**From outside**: place, size and neighbors.",
        "**From inside**: the parts, and what holds them together.",
        "**Over a year**: what changes, and what never does.",
      ],
      close: "If there is room for only one view, take the one from inside.",
    },
    {
      lead: "easiest to picture by parts, by use, and by contrast.",
      points: [
        "**Parts**: name them in the order in which you meet them.",
        "**Use**: who comes for it, when, and what they leave with.",
        "**Contrast**: what looks similar and is not.",
      ],
    },
  ],
  explain: [
    {
      lead: "first the idea, then the smallest example, then the limit.",
      points: [
        "**The idea**: one sentence without a technical term.",
        "**An example**: the smallest case that shows it.",
        "**The limit**: where the explanation stops being true.",
      ],
      close: "If one step has to go, keep the example.",
    },
    {
      lead: "there is a cause, a mechanism and an effect, in that order.",
      points: [
        "**Cause**: what was there before, and why it was not enough.",
        "**Mechanism**: what happens, step by step.",
        "**Effect**: what can be seen afterwards.",
      ],
    },
    {
      lead: "easier to follow backwards, from the result to the reason.",
      points: [
        "Start with the result that everyone knows.",
        "Ask what must have been true just before.",
        "Repeat until the question answers itself.",
      ],
    },
  ],
  compare: [
    {
      lead: "look at what they share first, and then at what sets them apart.",
      points: [
        "**What they share**: the reason why anyone compares them.",
        "**Where they differ**: price, effort, and what happens on a bad day.",
        "**What decides**: the difference that you would still notice in a year.",
      ],
    },
    {
      lead: "no single winner; it depends on what must not go wrong.",
      points: [
        "**When time is short**: the one that needs no preparation.",
        "**When money is short**: the one that can be left unfinished.",
        "**When it must not fail**: the one that you know better.",
      ],
      close: "A two-column list is enough to see which of the three applies.",
    },
    {
      lead: "three questions settle most of it.",
      points: [
        "Which one would be missed more?",
        "Which one is easier to change later?",
        "Which one needs someone who knows it well?",
      ],
    },
  ],
  plan: [
    {
      lead: "one fixed point at a time, and room around it.",
      points: [
        "**Before**: decide what must not fail, and who looks after it.",
        "**On the day**: one list, one person who keeps it, and one hour to spare.",
        "**Afterwards**: note what to do differently next time.",
      ],
    },
    {
      lead: "begin with what cannot be moved, and fill in the rest later.",
      points: [
        "**Fixed**: dates, opening hours, and whatever other people are waiting for.",
        "**Open**: everything that can be decided a day before.",
        "**In reserve**: one thing for bad weather.",
      ],
    },
    {
      lead: "a calm start, the main thing in the middle, and a short end.",
      points: [
        "**Start**: arrive, look around, promise nothing.",
        "**Middle**: the one thing that all this is for.",
        "**End**: what is left, without hurrying.",
      ],
      close: "What does not fit into the three parts can wait.",
    },
  ],
  write: [
    {
      lead: "a first draft in four sentences, to be filled in.",
      points: [
        "One sentence on why you are writing, and to whom.",
        "One on what has changed since the last time.",
        "One on what you are asking for, with a date.",
        "One friendly sentence to end it.",
      ],
    },
    {
      lead: "short, warm, and with the most important line first.",
      points: [
        "**First line**: what the reader has to know, even if they stop here.",
        "**Next**: the two questions that they would ask.",
        "**Last line**: what happens if they do nothing.",
      ],
      close: "Read it aloud once, and delete what you stumble over.",
    },
  ],
  summarize: [
    {
      lead: "what is settled, what is open, and one next step.",
      points: [
        "**Settled**: whatever nobody has asked about again.",
        "**Open**: the points that still need a decision.",
        "**Next**: one step, with a name and a date.",
      ],
    },
    {
      lead: "three lines are enough for a reader who was not there.",
      points: [
        "What was wanted, in one line.",
        "What came of it, in one line.",
        "What is left to do, in one line.",
      ],
    },
  ],
  research: [
    {
      lead: "two sources that agree are worth more than ten that copy each other.",
      points: [
        "**Known**: what independent sources agree on.",
        "**Disputed**: where they differ, and since when.",
        "**Missing**: the question that none of them asks.",
      ],
    },
    {
      lead: "start close by, and go further only if the answer is not there.",
      points: [
        "Ask the person who did it last.",
        "Look for the original, not for a report about it.",
        "Write down where each answer comes from.",
      ],
    },
  ],
  other: [
    {
      lead: "looked at, sorted, and ready for the next step.",
      points: [
        "**Clear**: the goal, as the task states it.",
        "**To check**: names, dates and numbers.",
        "**Next**: the smallest part that is useful on its own.",
      ],
    },
    {
      lead: "done in outline; the details can follow one by one.",
      points: [
        "Begin with the part that others are waiting for.",
        "Separate what can change from what cannot.",
        "Stop when the next step would not change the result.",
      ],
    },
  ],
};
