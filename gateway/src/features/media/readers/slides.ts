/** Text of PowerPoint files: each slide with its notes, in the order of their numbers. */
import { local, unpacked } from "./office.ts";
import { inTurns, TextOut, Unreadable } from "./reading.ts";
import { xmlParts } from "./xml.ts";

const SLIDE = /^ppt\/slides\/slide(\d{1,5})\.xml$/;
const NOTES = /^ppt\/notesSlides\/notesSlide(\d{1,5})\.xml$/;

export async function slidesText(bytes: Uint8Array): Promise<string> {
  const files = await unpacked(bytes, (name) => SLIDE.test(name) || NOTES.test(name));
  const numbers = [...files.keys()].flatMap((name) => SLIDE.exec(name)?.[1] ?? []).sort((left, right) => Number(left) - Number(right));
  if (numbers.length === 0) throw new Unreadable("It is damaged, or it is not a PowerPoint file.");
  const out = new TextOut();
  for (const number of numbers) {
    if (out.isFull) break;
    out.add(`[Slide ${number}]\n${await drawingText(files.get(`ppt/slides/slide${number}.xml`) ?? "")}\n`);
    const notes = (await drawingText(files.get(`ppt/notesSlides/notesSlide${number}.xml`) ?? "")).trim();
    if (notes !== "" && notes !== number) out.add(`[Notes] ${notes}\n`);
    out.add("\n");
  }
  return out.toString().trim();
}
async function drawingText(source: string): Promise<string> {
  const out: string[] = [];
  let isText = false;
  for await (const parts of inTurns(xmlParts(source)))
    for (const part of parts) {
      if (part.kind === "text") {
        if (isText) out.push(part.text);
        continue;
      }
      const name = local(part.name);
      if (name === "t") isText = part.kind === "open" && !part.isEmpty;
      else if (name === "br" || (name === "p" && part.kind === "close")) out.push("\n");
      else if (name === "tc" && part.kind === "close") out.push(" | ");
    }
  return out
    .join("")
    .replace(/\n \| /g, " | ")
    .replace(/\n{2,}/g, "\n")
    .trim();
}
