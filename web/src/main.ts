import { loadText } from '@/text'
import '@/app/page.css'

/** Load the texts before the modules that use them. */
async function main(): Promise<void> {
  await loadText()
  const { start } = await import('@/app/start')
  await start()
}

void main() // `public/boot.js` offers a reload if it fails
