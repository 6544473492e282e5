import { fileURLToPath } from 'node:url'
import tailwind from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'
import { budget } from './budget.ts'

const server = process.env.MOOT_SERVER ?? 'http://127.0.0.1:4747'

/** Fetch the first view's code while the texts are still being loaded. */
const preloadStart: Plugin = {
  name: 'preload-start',
  apply: 'build',
  transformIndexHtml: {
    order: 'post',
    handler: (_, { bundle = {} }) =>
      Object.values(bundle)
        .filter((file) => file.type === 'chunk' && file.name === 'start')
        .map(({ fileName }) => ({
          tag: 'link',
          attrs: { rel: 'modulepreload', crossorigin: true, href: `/${fileName}` },
          injectTo: 'head',
        })),
  },
}

export default defineConfig({
  plugins: [react(), tailwind(), preloadStart, budget(350)],
  resolve: {
    alias: {
      '@': fileURLToPath(new URL('./src', import.meta.url)),
      'rehype-raw': fileURLToPath(new URL('./src/conversation/markdown/literal.ts', import.meta.url)),
    },
  },
  build: {
    outDir: '../src/moot/server/page',
    emptyOutDir: true,
    target: 'es2022',
    manifest: true,
    assetsInlineLimit: 0, // the page's policy allows no data: scripts or fonts
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: 'text', test: /src\/text\.ts$/, priority: 1 },
            { name: 'start', test: /src\/app\/start\.tsx$/ },
          ],
        },
      },
    },
  },
  worker: { format: 'es' },
  // `npm run dev` serves the sources and hands what is the server's to a running `moot serve`
  server: { proxy: { '/api': { target: server, changeOrigin: true } } },
})
