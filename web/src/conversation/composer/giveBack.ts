import { useAui } from '@assistant-ui/react'
import type { Part } from '@/api/types'
import { setDetail } from '@/conversation/composer/attachments'
import { ownFiles, typedText } from '@/conversation/messages/parts'

/** Return a function that puts unsent prompts and their files back into the composer, before the text already typed. */
export function useGiveBack(): (prompts: readonly (readonly Part[])[]) => void {
  const aui = useAui()
  return (prompts) => {
    const words = prompts.map(typedText)
    aui.composer.setText([...words, aui.composer.getState().text].filter((text) => text.trim()).join('\n\n'))
    for (const { url, mediaType, filename, detail } of prompts.flatMap(ownFiles)) {
      const id = crypto.randomUUID()
      if (detail) setDetail(id, detail)
      void aui.composer.addAttachment({
        id,
        name: filename ?? mediaType,
        type: mediaType.startsWith('image/') ? 'image' : 'file',
        contentType: mediaType,
        content: [{ type: 'file', data: url, mimeType: mediaType, filename }],
      })
    }
  }
}
