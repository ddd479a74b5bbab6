/**
 * Prints how well an agent's index finds answers in made-up conversations: by words, by vectors, and by both (gateway/spec/memory.md, LM11).
 *
 *   node gateway/test/features/search/recall-print.ts
 */
import { measure, tableOf } from "./recall-measure.ts";

console.log(tableOf(measure()));
