/**
 * A made-up dialogue of two people over 19 evenings, and 60 questions about it with the lines that answer them. The same seed gives
 * the same dialogue. A third of the answers repeat no telling word of their question: the line before them does, or the date.
 */
import { seeded } from "../../../../test/seeded.ts";

export interface Evening {
  /** `2025-01-10`. */
  readonly date: string;
  readonly lines: readonly string[];
}
export interface Question {
  readonly text: string;
  /** The line that answers it. */
  readonly evidence: string;
}

const PEOPLE = ["Anna", "Tomas"] as const;
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const EVENINGS = 19;
const SMALL_TALK_LINES = 26;

interface Setting {
  readonly me: string;
  readonly you: string;
  /** `10 January`. */
  readonly day: string;
}
interface Fact {
  /** A question of the other person right before, if any. */
  readonly cue?: string;
  readonly answer: string;
  readonly asked: string;
}
type Template = readonly [fills: readonly (readonly [string, string])[], fact: (one: string, two: string, setting: Setting) => Fact];

const TEMPLATES: readonly Template[] = [
  [
    [
      ["kitchen", "yellow"],
      ["hallway", "grey"],
      ["bathroom", "blue"],
      ["shed", "red"],
      ["balcony", "white"],
    ],
    (room, colour, { me }) => ({
      answer: `I spent the whole weekend painting the ${room} ${colour}.`,
      asked: `Which colour did ${me} paint the ${room}?`,
    }),
  ],
  [
    [
      ["Norway", "rained"],
      ["Slovenia", "snowed"],
      ["Corsica", "was far too hot"],
      ["Wales", "was foggy"],
      ["Madeira", "was windy"],
    ],
    (place, weather, { me }) => ({
      answer: `We hiked in ${place} for a week and it ${weather} every day.`,
      asked: `What was the weather like when ${me} was hiking in ${place}?`,
    }),
  ],
  [
    [
      ["pottery", "Monday"],
      ["welding", "Tuesday"],
      ["Danish", "Thursday"],
      ["chess", "Friday"],
      ["diving", "Saturday"],
    ],
    (course, weekday, { me, you }) => ({
      cue: `Did you sign up for the ${course} course?`,
      answer: `Yes I did, it is every ${weekday}, and the first evening was great fun, ${you}.`,
      asked: `On which weekday is the ${course} course that ${me} signed up for?`,
    }),
  ],
  [
    [
      ["sister", "telescope"],
      ["uncle", "chessboard"],
      ["grandmother", "radio"],
      ["nephew", "kite"],
      ["boss", "teapot"],
    ],
    (relative, gift, { me }) => ({
      answer: `For my ${relative} I ended up buying a ${gift}, wrapped in newspaper.`,
      asked: `What did ${me} buy for the ${relative}?`,
    }),
  ],
  [
    [
      ["knee", "rest and some exercises"],
      ["shoulder", "heat"],
      ["back", "a better chair"],
      ["wrist", "a splint"],
      ["ankle", "cold water"],
    ],
    (part, advice, { me }) => ({
      cue: `What did the doctor say about your ${part}?`,
      answer: `Nothing serious, just ${advice} for a few weeks.`,
      asked: `What did the doctor advise ${me} for the ${part}?`,
    }),
  ],
  [
    [
      ["tax form", ""],
      ["thesis", ""],
      ["resignation", ""],
      ["passport form", ""],
      ["insurance claim", ""],
    ],
    (paper, _none, { me, day }) => ({ answer: `I finally handed in the ${paper}.`, asked: `What did ${me} hand in on ${day}?` }),
  ],
  [
    [
      ["goulash", "cocoa"],
      ["risotto", "lemon peel"],
      ["lentil soup", "cumin"],
      ["pancakes", "buttermilk"],
      ["chili", "espresso"],
    ],
    (dish, ingredient, { me }) => ({
      answer: `The secret of my ${dish} is a spoon of ${ingredient}.`,
      asked: `What is the secret ingredient in ${me}'s ${dish}?`,
    }),
  ],
  [
    [
      ["bicycle", "80"],
      ["washing machine", "140"],
      ["violin", "210"],
      ["camera", "95"],
      ["heating", "400"],
    ],
    (thing, euros, { me }) => ({
      answer: `My ${thing} broke again, and they wanted ${euros} euros for the repairs.`,
      asked: `How much was it to repair ${me}'s ${thing}?`,
    }),
  ],
  [
    [
      ["beavers", "cry"],
      ["lighthouses", "laugh"],
      ["glaciers", "think"],
      ["counterfeiters", "angry"],
      ["submarines", "sleepy"],
    ],
    (topic, feeling, { me }) => ({
      cue: `Are you still reading that book about ${topic}?`,
      answer: `I finished it on the train. The ending made me ${feeling}.`,
      asked: `How did ${me} feel at the end of the book about ${topic}?`,
    }),
  ],
  [
    [
      ["library", "three"],
      ["harbour office", "two"],
      ["zoo", "five"],
      ["observatory", "four"],
      ["bakery", "six"],
    ],
    (place, count, { me }) => ({
      answer: `The interview at the ${place} was tough, ${count} people kept questioning me.`,
      asked: `How many people interviewed ${me} at the ${place}?`,
    }),
  ],
  [
    [
      ["opera", ""],
      ["night ferry", ""],
      ["hockey match", ""],
      ["circus", ""],
      ["lecture on whales", ""],
    ],
    (event, _none, { me, day }) => ({ answer: `I booked two tickets for the ${event}.`, asked: `What tickets did ${me} book on ${day}?` }),
  ],
  [
    [
      ["cello", "seven"],
      ["banjo", "two"],
      ["accordion", "eleven"],
      ["clarinet", "five"],
      ["harp", "nine"],
    ],
    (instrument, months, { me }) => ({
      answer: `I have been practising the ${instrument} for ${months} months now.`,
      asked: `How long has ${me} practised the ${instrument}?`,
    }),
  ],
];

const SMALL_TALK = [
  "How was your day?",
  "Long, but the meeting went well in the end.",
  "The weather was awful here, I took the tram.",
  "Did you watch the match yesterday?",
  "Only the end of it, I fell asleep on the sofa.",
  "My phone is at two percent, so I may vanish.",
  "I am cooking pasta again, nothing special.",
  "That sounds good, I only had bread.",
  "We should meet on the weekend.",
  "Sunday would be fine, in the afternoon.",
  "I read the news and got angry, as always.",
  "Then stop reading the news for a week.",
  "The neighbours are having a birthday party, it is loud.",
  "I would like a quiet evening with a book.",
  "Work is fine, the new people are nice.",
  "They asked me how long I want to stay.",
  "And what did you say?",
  "That I like it, which is true most days.",
  "The train was late by forty minutes this morning.",
  "Mine was cancelled, so I went by bicycle.",
  "I still have to buy a present and a card.",
  "Tell me when you are home.",
  "I feel much better than last week.",
  "Good, I was a little worried about you.",
  "What are you doing on Friday evening?",
  "Nothing yet, maybe a course or a film.",
  "It costs too much, I would say no.",
  "Let us talk about it tomorrow.",
] as const;

export function dialogue(seed: number): { readonly evenings: readonly Evening[]; readonly questions: readonly Question[] } {
  const random = seeded(seed);
  const pick = (count: number): number => Math.floor(random() * count);
  const plan = TEMPLATES.flatMap(([fills, fact]) =>
    fills.map(
      ([one, two]) =>
        (setting: Setting) =>
          fact(one, two, setting),
    ),
  );
  const facts = plan.map((fact) => ({ fact, key: random() })).sort((left, right) => left.key - right.key);
  const questions: Question[] = [];
  const evenings = Array.from({ length: EVENINGS }, (_, evening): Evening => {
    const at = new Date(Date.UTC(2025, 0, 10 + evening * 9));
    const day = `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()] ?? ""}`;
    const blocks: string[][] = Array.from({ length: SMALL_TALK_LINES }, () => [
      `${PEOPLE[pick(2)] ?? ""}: ${SMALL_TALK[pick(SMALL_TALK.length)] ?? ""}`,
    ]);
    for (const { fact } of facts.filter((_fact, index) => index % EVENINGS === evening)) {
      const first = pick(2);
      const [me = "", you = ""] = [PEOPLE[first], PEOPLE[1 - first]];
      const { cue, answer, asked } = fact({ me, you, day });
      const evidence = `${me}: ${answer}`;
      blocks.splice(pick(blocks.length + 1), 0, cue === undefined ? [evidence] : [`${you}: ${cue}`, evidence]);
      questions.push({ text: asked, evidence });
    }
    return { date: at.toISOString().slice(0, 10), lines: blocks.flat() };
  });
  return { evenings, questions };
}
