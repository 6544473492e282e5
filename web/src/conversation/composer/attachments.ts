import type { AttachmentAdapter } from '@assistant-ui/react'
import { api } from '@/api/client'
import { text } from '@/text'

interface Stored {
  url: string
  sha256: string
  size: number
  media_type: string
}

const stored = new Map<string, string>()

export type Detail = keyof typeof text.composer.details

const details = new Map<string, Detail>()

/** Set the detail in which the model sees an attached image. */
export function setDetail(id: string, detail: Detail): void {
  details.set(id, detail)
}

/** Return the detail that was set for an attached image. */
export function detailOf(id: string): Detail | undefined {
  return details.get(id)
}

/** Upload a file when it is attached. The message then refers to it. */
export const attachments: AttachmentAdapter = {
  accept: '*',
  async *add({ file }) {
    const id = crypto.randomUUID()
    const contentType = file.type || 'application/octet-stream'
    const attachment = {
      id,
      type: file.type.startsWith('image/') ? ('image' as const) : ('file' as const),
      name: file.name,
      contentType,
      file,
    }
    yield { ...attachment, status: { type: 'running', reason: 'uploading', progress: 0 } }
    const answer = await api.post<Stored>('/blobs', file, {
      query: { name: file.name },
      headers: { 'content-type': contentType },
    })
    stored.set(id, answer.url ?? `blob:${answer.sha256}`)
    yield { ...attachment, status: { type: 'requires-action', reason: 'composer-send' } }
  },
  async send(attachment) {
    const data = stored.get(attachment.id)
    if (!data) throw new Error(text.composer.notUploaded(attachment.name))
    return {
      ...attachment,
      status: { type: 'complete' },
      content: [
        {
          type: 'file',
          data,
          mimeType: attachment.contentType ?? 'application/octet-stream',
          filename: attachment.name,
        },
      ],
    }
  },
  async remove({ id }) {
    details.delete(id)
    stored.delete(id) // the server deletes blobs that no message refers to
  },
}
