/**
 * The few functions of Photon (WebAssembly) that scale an image. Every image gets an instance of its own, because the memory of an
 * instance never shrinks: when the image is done, all of it can be collected. Calls the exports of `@cf-wasm/photon` directly, since
 * its own binding keeps one instance for good.
 */
import { turned } from "./image-facts.ts";

interface Exports {
  readonly memory: WebAssembly.Memory;
  readonly __wbindgen_malloc: (bytes: number, align: number) => number;
  readonly photonimage_new: (at: number, bytes: number, width: number, height: number) => number;
  readonly photonimage_new_from_byteslice: (at: number, bytes: number) => number;
  readonly photonimage_get_bytes_jpeg: (image: number, quality: number) => readonly [at: number, bytes: number];
  readonly photonimage_get_raw_pixels: (image: number) => readonly [at: number, bytes: number];
  readonly photonimage_get_width: (image: number) => number;
  readonly photonimage_get_height: (image: number) => number;
  readonly __wbg_photonimage_free: (image: number, shared: number) => void;
  readonly resize: (image: number, width: number, height: number, filter: number) => number;
  readonly __wbindgen_start: () => void;
}
const FUNCTIONS = [
  "__wbindgen_malloc",
  "photonimage_new",
  "photonimage_new_from_byteslice",
  "photonimage_get_bytes_jpeg",
  "photonimage_get_raw_pixels",
  "photonimage_get_width",
  "photonimage_get_height",
  "__wbg_photonimage_free",
  "resize",
  "__wbindgen_start",
] as const satisfies readonly (keyof Exports)[];
const isPhoton = (exports: object): exports is Exports =>
  "memory" in exports && FUNCTIONS.every((name) => typeof Reflect.get(exports, name) === "function");
/** Numbers of Photon's filters. */
const TRIANGLE = 2;

/** One image in an instance of its own. A file that cannot be decoded throws. */
export class PhotonImage {
  readonly #exports: Exports;
  #image: number;

  constructor(module: WebAssembly.Module, bytes: Uint8Array) {
    const refuse = (): never => {
      throw new Error("the image could not be decoded");
    };
    // The other imports belong to canvases of browsers.
    const imports = Object.fromEntries(WebAssembly.Module.imports(module).map(({ name }) => [name, refuse]));
    imports["__wbindgen_init_externref_table"] = (() => {}) as () => never;
    const instance = new WebAssembly.Instance(module, { "./photon_rs_bg.js": imports });
    const { exports } = instance;
    if (!isPhoton(exports)) throw new Error("this is not the Photon that this file was written for");
    this.#exports = exports;
    this.#exports.__wbindgen_start();
    this.#image = this.#exports.photonimage_new_from_byteslice(this.#given(bytes), bytes.length);
  }
  #given(bytes: Uint8Array): number {
    const at = this.#exports.__wbindgen_malloc(bytes.length, 1) >>> 0;
    new Uint8Array(this.#exports.memory.buffer).set(bytes, at);
    return at;
  }
  #taken([at, bytes]: readonly [number, number]): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#exports.memory.buffer).slice(at >>> 0, (at >>> 0) + (bytes >>> 0));
  }
  get width(): number {
    return this.#exports.photonimage_get_width(this.#image) >>> 0;
  }
  get height(): number {
    return this.#exports.photonimage_get_height(this.#image) >>> 0;
  }
  resize(width: number, height: number): void {
    this.#replace(this.#exports.resize(this.#image, width, height, TRIANGLE));
  }
  /** Makes an image upright that has this EXIF orientation. */
  turn(orientation: number): void {
    if (orientation === 1) return;
    const pixels = this.#taken(this.#exports.photonimage_get_raw_pixels(this.#image));
    const upright = turned({ pixels, width: this.width, height: this.height }, orientation);
    this.#replace(this.#exports.photonimage_new(this.#given(upright.pixels), upright.pixels.length, upright.width, upright.height));
  }
  jpeg(quality: number): Uint8Array<ArrayBuffer> {
    return this.#taken(this.#exports.photonimage_get_bytes_jpeg(this.#image, quality));
  }
  #replace(image: number): void {
    this.#exports.__wbg_photonimage_free(this.#image, 0);
    this.#image = image;
  }
}
