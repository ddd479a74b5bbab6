/** WebAssembly is imported as a compiled module (the bundle's rule, and the tests' plugin). */
declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}
