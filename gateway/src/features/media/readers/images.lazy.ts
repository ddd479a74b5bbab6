/** Scales images that are too large for models, in WebAssembly. Loaded on first use. */
import photon from "@cf-wasm/photon/photon.wasm";
import type { Reader } from "../../../ports/readers.ts";
import { type ImageFacts, imageFacts } from "./image-facts.ts";
import { PhotonImage } from "./photon.ts";
import { outcomeOf, Unreadable } from "./reading.ts";

/** Tries, from the best: longest side in pixels, and quality of the JPEG. */
const STEPS = [
  [2_000, 85],
  [1_568, 75],
  [1_024, 60],
] as const;

export const read: Reader["read"] = (bytes, task) =>
  outcomeOf(() => {
    if (task.kind !== "image") throw new Unreadable("It is not an image.");
    const facts = imageFacts(bytes);
    if (facts === undefined) throw new Unreadable("Its size in pixels is not known, so it cannot be scaled.");
    const { width, height } = facts;
    if (width * height > task.maxPixels)
      throw new Unreadable(`It has ${width} x ${height} pixels; at most ${task.maxPixels / 1_000_000} million pixels can be scaled here.`);
    return scaledImage(bytes, facts, task.maxBytes);
  });

/** An upright JPEG of at most `maxBytes`. Throws when the image cannot be decoded. */
function scaledImage(bytes: Uint8Array, { orientation }: Pick<ImageFacts, "orientation">, maxBytes: number): Uint8Array<ArrayBuffer> {
  const image = new PhotonImage(photon, bytes);
  let turned = false;
  for (const [side, quality] of STEPS) {
    const { width, height } = image;
    const factor = Math.min(1, side / Math.max(width, height));
    if (factor < 1) image.resize(Math.max(1, Math.round(width * factor)), Math.max(1, Math.round(height * factor)));
    if (!turned) image.turn(orientation);
    turned = true;
    const jpeg = image.jpeg(quality);
    if (jpeg.length <= maxBytes) return jpeg;
  }
  throw new Error("the scaled image is still too large");
}
