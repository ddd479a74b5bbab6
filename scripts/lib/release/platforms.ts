/** The platforms of releases, and what each name means to npm, cargo and workerd. docs/release.md has the same table. PURE. */
export interface Platform {
  /** As `gsv update` and Node name it. */
  readonly name: string;
  readonly os: string;
  readonly cpu: string;
  /** For `cargo build --target`. */
  readonly target: string;
}
export const PLATFORMS: readonly Platform[] = [
  { name: "linux-x64", os: "linux", cpu: "x64", target: "x86_64-unknown-linux-gnu" },
  { name: "linux-arm64", os: "linux", cpu: "arm64", target: "aarch64-unknown-linux-gnu" },
  { name: "darwin-x64", os: "darwin", cpu: "x64", target: "x86_64-apple-darwin" },
  { name: "darwin-arm64", os: "darwin", cpu: "arm64", target: "aarch64-apple-darwin" },
];
export const platformOf = (os: string, cpu: string): Platform | undefined =>
  PLATFORMS.find((platform) => platform.os === os && platform.cpu === cpu);
