import { useAui } from '@assistant-ui/react'
import type { Part } from '@/api/types'

/** Return a function that puts unsent prompts and their files back into the composer, before the text already typed. */
export function useGiveBack(): (prompts: readonly (readonly Part[])[]) => void {
  const aui = useAui()
  return (prompts) => {
    const words = prompts.map((parts) => parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(''))
    aui.composer.setText([...words, aui.composer.getState().text].filter((text) => text.trim()).join('\n\n'))
    for (const part of prompts.flat()) {
      if (part.type !== 'file') continue
      const { url, mediaType, filename } = part
      void aui.composer.addAttachment({
        name: filename ?? mediaType,
        type: mediaType.startsWith('image/') ? 'image' : 'file',
        contentType: mediaType,
        content: [{ type: 'file', data: url, mimeType: mediaType, filename }],
      })
    }
  }
}
