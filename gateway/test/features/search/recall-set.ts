/**
 * Twenty made-up conversations of two people over a year, and more than a thousand questions about them with the messages that answer
 * them: plain facts, answers that only the message before explains, other words for the same thing, days and months, preferences, and
 * facts that changed. The same seed gives the same set. It uses no real person's words.
 */
import { DAY_MS } from "../../../../protocol/runtime/day.ts";
import { seeded } from "../../../../test/seeded.ts";

export interface Turn {
  readonly at: number;
  readonly text: string;
}
export type Kind = "fact" | "answer" | "words" | "date" | "preference" | "changed";
export interface Question {
  readonly kind: Kind;
  readonly text: string;
  /** Positions of the messages that answer it. */
  readonly evidence: readonly number[];
}
export interface Conversation {
  /** In order; a new day begins where the date changes. */
  readonly turns: readonly Turn[];
  readonly questions: readonly Question[];
}

/** `{a}`, `{b}` and `{c}` are the parts of a fill; `{me}`, `{you}`, `{day}` and `{month}` come from the conversation. `>` is said before, by the other. */
interface Template {
  readonly kind: Kind;
  readonly fills: string;
  readonly said: string;
  readonly asked: readonly string[];
}
const TEMPLATES: readonly Template[] = [
  {
    kind: "fact",
    fills: "kitchen/yellow, hallway/grey, bathroom/blue, shed/red, balcony/white",
    said: "I spent the whole weekend painting the {a} {b}.",
    asked: ["Which colour did {me} paint the {a}?", "What colour is {me}'s {a} now?"],
  },
  {
    kind: "fact",
    fills: "sister/telescope, uncle/chessboard, grandmother/radio, nephew/kite, boss/teapot",
    said: "For my {a} I ended up buying a {b}, wrapped in newspaper.",
    asked: ["What did {me} buy for the {a}?", "Which present did {me}'s {a} get?"],
  },
  {
    kind: "fact",
    fills: "library/three, harbour office/two, zoo/five, observatory/four, bakery/six",
    said: "The interview at the {a} was tough, {b} people kept questioning me.",
    asked: ["How many people interviewed {me} at the {a}?", "How large was the panel when {me} applied at the {a}?"],
  },
  {
    kind: "fact",
    fills: "cello/seven, banjo/two, accordion/eleven, clarinet/five, harp/nine",
    said: "I have been practising the {a} for {b} months now.",
    asked: ["How long has {me} practised the {a}?", "Since how many months does {me} play the {a}?"],
  },
  {
    kind: "fact",
    fills: "router/cellar, spare key/flower pot, passport/blue drawer, drill/garage, tent/attic",
    said: "I found it again: the {a} was in the {b} all the time.",
    asked: ["Where is {me}'s {a}?", "Where did {me} find the {a}?"],
  },
  {
    kind: "answer",
    fills: "pottery/Monday, welding/Tuesday, Danish/Thursday, chess/Friday, diving/Saturday",
    said: "Did you sign up for the {a} course? > Yes I did, it is every {b}, and the first evening was great fun.",
    asked: ["On which weekday is the {a} course that {me} signed up for?", "When in the week does {me} learn {a}?"],
  },
  {
    kind: "answer",
    fills: "knee/rest and some exercises, shoulder/heat, back/a better chair, wrist/a splint, ankle/cold water",
    said: "What did the doctor say about your {a}? > Nothing serious, just {b} for a few weeks.",
    asked: ["What did the doctor advise {me} for the {a}?", "How is {me}'s {a} being treated?"],
  },
  {
    kind: "answer",
    fills: "lighthouses/laugh, glaciers/think, counterfeiters/angry, submarines/sleepy, beekeepers/cry",
    said: "Are you still reading that book about {a}? > I finished it on the train. The ending made me {b}.",
    asked: ["How did {me} feel at the end of the book about {a}?", "Did {me} finish the book on {a}?"],
  },
  {
    kind: "answer",
    fills: "landlord/forty euros more, insurer/only half of it, plumber/next Wednesday, tax office/an extension, garage/a new clutch",
    said: "Have you heard back from the {a}? > They called at noon. It will be {b}.",
    asked: ["What did the {a} tell {me}?", "What was the answer of {me}'s {a}?"],
  },
  {
    kind: "words",
    fills: "car/brakes/automobile, bicycle/chain/bike, motorbike/exhaust/motorcycle, truck/battery/lorry, boat/rudder/sailing vessel",
    said: "My {a} is at the workshop again, the {b} gave up on the worst day of all.",
    asked: ["What needs repair on the {c} of {me}?", "Why is the {c} of {me} at the workshop?"],
  },
  {
    kind: "words",
    fills:
      "daughter/violin exam/girl, son/goalkeeper trial/boy, twins/kindergarten place/little children, grandmother/driving test/old lady, puppy/first swim/young dog",
    said: "Proud moment: my {a} made it, the {b} we were all nervous about.",
    asked: ["Which success of the {c} made {me} happy?", "At what did the {c} make {me} proud?"],
  },
  {
    kind: "words",
    fills:
      "hotel/mice in the wall/accommodation, flight/nine hours late/airline, campsite/flooded at night/tent holiday, ferry/all of us seasick/ship crossing, hostel/snoring from all sides/cheap lodging",
    said: "Never again that {a}: {b}. We want our money back.",
    asked: ["Why was {me} unhappy with the {c}?", "For which {c} does {me} want the money back?"],
  },
  {
    kind: "words",
    fills: "soup/celery/broth, cake/cardamom/baking, curry/lime leaves/Indian dish, salad/figs/raw vegetables, stew/prunes/casserole",
    said: "The secret of my {a} is {b}, and do not tell my mother.",
    asked: ["Which hidden ingredient goes into the {c} that {me} makes?", "What is the secret of {me}'s {c}?"],
  },
  {
    kind: "words",
    fills:
      "wallet/tram/purse, umbrella/cinema/rain cover, phone/taxi/mobile, scarf/museum cloakroom/shawl, glasses/swimming pool/spectacles",
    said: "I am so stupid, I left my {a} in the {b} yesterday.",
    asked: ["Where did {me} lose the {c}?", "Where has {me} left the {c}?"],
  },
  {
    kind: "date",
    fills: "opera, night ferry, hockey match, circus, lecture on whales",
    said: "I booked two tickets for the {a}.",
    asked: ["What tickets did {me} book on {day}?", "Which event did {me} get tickets for on {day}?"],
  },
  {
    kind: "date",
    fills: "vineyard, salt mine, wind farm, monastery, planetarium",
    said: "Today we finally visited the {a}, my feet hurt.",
    asked: ["Which place did {me} visit on {day}?", "Where did {me} go on {day}?"],
  },
  {
    kind: "date",
    fills: "tax form, thesis, resignation, passport form, grant proposal",
    said: "It is done: I handed in the {a} this morning.",
    asked: ["What did {me} hand in on {day}?", "When did {me} submit the {a}?"],
  },
  {
    kind: "preference",
    fills: "drink/oolong tea, eat/pickled herring, read/crime novels, play/backgammon, watch/old westerns",
    said: "Honestly, if I could {a} one thing for the rest of my life, it would be {b}.",
    asked: ["What does {me} like to {a} most?", "What would {me} {a} until the end of all days?"],
  },
  {
    kind: "preference",
    fills: "coriander/soap, karaoke/torture, early flights/cruel, scented candles/headache, group chats/noise",
    said: "You know how I am with {a}: to me it is just {b}.",
    asked: ["What does {me} think of {a}?", "Does {me} like {a}?"],
  },
  {
    kind: "preference",
    fills: "window seat/plane, corner table/restaurant, top bunk/hut, last row/cinema, quiet coach/train",
    said: "In a {b} I always take the {a}, otherwise I get nervous.",
    asked: ["Where does {me} prefer to sit or lie in a {b}?", "Which place should be reserved for {me} in the {b}?"],
  },
  {
    kind: "changed",
    fills: "Lund/Malmö, Ghent/Bruges, Porto/Faro, Leipzig/Jena, Cork/Galway",
    said: "The boxes are unpacked, I live in {a} now. >> Big news: we moved again, from today we live in {b}.",
    asked: ["In which town does {me} live since moving again?", "Where did {me} live before moving from {a}, and where after?"],
  },
  {
    kind: "changed",
    fills: "gym/rowing club, choir/theatre group, bakery job/florist job, stamp club/allotment society, night shift/day shift",
    said: "I joined it, the {a}, and I start next week. >> I quit the {a}. I changed to the {b} instead.",
    asked: ["What did {me} change to after the {a}?", "Why is {me} not in the {a} any more, what came instead?"],
  },
];
const PAIRS =
  "Anna Tomas, Beatriz Karl, Chiara Jonas, Dana Viktor, Edith Marco, Farida Sven, Greta Pavel, Hanna Luis, Irene Otto, Judit Nils, Katja Bruno, Lea Anton, Mira Felix, Nora Hugo, Olga Ruben, Paula Simon, Rosa Stefan, Selma Ivo, Tilda Rafael, Vera Emil";
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const OPENINGS = "By the way|Listen|Oh|Anyway|So|Hey|Well|Look|Hm|Right";
const TALK =
  "how was your day|it was long but the meeting went well|the weather is awful so I took the tram|did you see the match yesterday|only the end of it because I fell asleep|my phone is nearly empty|I am cooking pasta again|that sounds good as I only had bread|we should meet on the weekend|Sunday would be fine in the afternoon|I read the news and got angry as always|then stop reading them for a week|the neighbours have a party and it is loud|I would like a quiet evening with a book|work is fine and the new people are nice|they asked me how long I want to stay|and what did you say|that I like it which is true most days|the train was late by forty minutes|mine was cancelled so I came by bicycle|I still have to buy a present and a card|tell me when you are home|I feel much better than last week|good because I was a little worried|what are you doing on Friday evening|nothing yet maybe a course or a film|it costs too much I would say no|let us talk about it tomorrow|the doctor was late today|my boss wants a report by Monday|I found a nice place to eat|the tickets were sold out|my sister called again|we painted a little and then gave up|I moved the table to the window|I started a new book|the garden needs water|my back hurts from sitting|the key was stuck in the door|I joined the call too late";
const DAYS = 40;
const TALK_PER_DAY = 10;

const filled = (text: string, values: Readonly<Record<string, string>>): string =>
  text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);

function conversation(number: number): Conversation {
  const random = seeded(4_000 + number);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const people = (PAIRS.split(", ")[number % 20] ?? "A B").split(" ");
  const start = Date.UTC(2025, number % 12, 3 + number, 18);
  /** Messages of each day, with the facts that they tell. */
  const days = Array.from({ length: DAYS }, (): { text: string; marks: object[] }[] => []);
  const asked: { kind: Kind; text: string; marks: object[] }[] = [];
  for (const { kind, fills, said, asked: phrasings } of TEMPLATES)
    for (const fill of fills.split(", ").filter(() => random() < 0.26)) {
      const [a = "", b = "", c = ""] = fill.split("/");
      const first = random() < 0.5 ? 0 : 1;
      const [me = "", you = ""] = [people[first], people[1 - first]];
      const at = Math.floor(random() * (DAYS - 12));
      const later = at + 4 + Math.floor(random() * 8);
      const date = new Date(start + at * 9 * DAY_MS);
      const month = MONTHS[date.getUTCMonth()] ?? "";
      const values = { a, b, c, me, you, month, day: `${date.getUTCDate()} ${month}` };
      const marks: object[] = [];
      for (const [part, text] of said.split(" >> ").entries()) {
        const mark = {};
        marks.push(mark);
        const lines = text.split(" > ");
        const spoken = lines.map((line, index) => ({
          text: `${index === lines.length - 1 ? me : you}: ${filled(line, values)}`,
          marks: index === lines.length - 1 ? [mark] : [],
        }));
        days[part === 0 ? at : later]?.push(...spoken);
      }
      for (const text of phrasings) asked.push({ kind, text: filled(text, values), marks });
    }
  const turns: Turn[] = [];
  const places = new Map<object, number>();
  for (const [day, told] of days.entries()) {
    const at = start + day * 9 * DAY_MS;
    const talk = Array.from({ length: TALK_PER_DAY }, () => `${pick(people)}: ${pick(OPENINGS.split("|"))}, ${pick(TALK.split("|"))}.`);
    // Facts come in order, with small talk around them.
    for (const { text, marks } of told) {
      // Nothing comes between a question and its answer.
      const isAnswer = turns.at(-1)?.text.endsWith("?") === true && marks.length > 0;
      for (let count = isAnswer ? 0 : Math.floor(random() * 3); count > 0; count--) {
        const line = talk.pop();
        if (line !== undefined) turns.push({ at: at + turns.length * 1_000, text: line });
      }
      for (const mark of marks) places.set(mark, turns.length);
      turns.push({ at: at + turns.length * 1_000, text });
    }
    for (const text of talk) turns.push({ at: at + turns.length * 1_000, text });
  }
  const questions = asked.map(({ kind, text, marks }) => ({ kind, text, evidence: marks.flatMap((mark) => places.get(mark) ?? []) }));
  return { turns, questions };
}

export const conversations = (): readonly Conversation[] => Array.from({ length: 20 }, (_, number) => conversation(number));
