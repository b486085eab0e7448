import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// Relative addresses, so that one build works under any base path of a proxy.
export default defineConfig({
  root: here("."),
  base: "./",
  plugins: [react({ jsxImportSource: "visible-text" })],
  resolve: {
    alias: {
      "skein/client": here("../src/entry-client.ts"),
      "visible-text/jsx-runtime": here("src/ui/jsx-runtime.ts"),
    },
  },
  build: {
    outDir: here("../dist/console"),
    emptyOutDir: true,
    target: "es2023",
    // One file for all styles, because a style that could not be loaded offline would not be loaded again.
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    // An inlined asset would be a data: URL, which the content security policy forbids for styles and scripts.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
});
