/** Scales images that are too large for models, in WebAssembly. Loaded on first use. */
import photon from "@cf-wasm/photon/photon.wasm";
import type { ImageFacts } from "./image-facts.ts";
import { PhotonImage } from "./photon.ts";

/** Tries, from the best: longest side in pixels, and quality of the JPEG. */
const STEPS = [
  [2_000, 85],
  [1_568, 75],
  [1_024, 60],
] as const;

/** An upright JPEG of at most `maxBytes`. Throws when the image cannot be decoded. */
export function scaledImage(
  bytes: Uint8Array,
  { orientation }: Pick<ImageFacts, "orientation">,
  maxBytes: number,
): Uint8Array<ArrayBuffer> {
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
