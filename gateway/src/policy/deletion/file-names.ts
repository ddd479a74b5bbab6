/** Names that are those of files, not of folders or programs, by their extension (rule PO13). PURE. */

const EXTENSIONS =
  "md mdx rst adoc txt log tex json jsonc json5 jsonl ndjson yaml yml toml ini cfg conf env properties xml xsd xsl html htm css scss sass less svg " +
  "ts tsx mts cts js jsx mjs cjs vue svelte astro py pyi pyx ipynb rs go mod sum c h cc cpp cxx hpp hh m mm java kt kts scala groovy gradle rb erb " +
  "php pl pm lua swift cs fs fsx vb dart ex exs erl hrl hs ml mli clj cljs el lisp r jl nim zig sol v sv vhd asm s sql graphql gql proto thrift " +
  "prisma tf tfvars hcl nix cmake mk bazel bzl sh bash zsh fish ps1 bat cmd awk sed vim csv tsv parquet png jpg jpeg gif webp ico bmp pdf doc docx " +
  "xls xlsx ppt pptx odt ods mp3 mp4 wav ogg webm ttf otf woff woff2 zip tgz tar gz bz2 xz zst 7z jar whl lock snap patch diff map po pot mo " +
  "example sample template tmpl j2 hbs ejs pug tpl wasm wat pem crt key pub service timer desktop plist csproj sln spec";
const WITH_EXTENSION = new RegExp(`[^/]\\.(?:${EXTENSIONS.replaceAll(" ", "|")})$`, "i");
/** Have none, and are files. */
const FILES =
  /(?:^|\/)(?:Makefile|Dockerfile|Gemfile|Rakefile|Procfile|Vagrantfile|Jenkinsfile|Justfile|README|LICENSE|NOTICE|CHANGELOG|CODEOWNERS|\.(?:env|npmrc|nvmrc|mailmap|editorconfig|(?:git|docker|npm|eslint|prettier)(?:ignore|attributes|modules)|(?:eslint|prettier|babel)rc))$/;
/** A folder can have such a name, but none is usual. */
export const namesFile = (path: string): boolean => WITH_EXTENSION.test(path) || FILES.test(path);
/** A pattern, or a list in braces, of names with such an extension. A variable in it may be several words. */
export const arePlainFiles = (pattern: string): boolean => !/[$`]/.test(pattern) && WITH_EXTENSION.test(pattern);
