import { useState } from 'react'
import { address } from '@/api/client'
import { type ExportFormat, useExportFormats } from '@/data/sharing'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Failed, Loading } from '@/ui/States'

interface Props {
  conversation: string
  onClose: () => void
}

/** The export dialog: formats, and what each one preserves. */
export default function Export({ conversation, onClose }: Props) {
  const { data, error, refetch } = useExportFormats()
  const [share, setShare] = useState(false)
  const [chosen, setChosen] = useState('html')
  const forms = data?.data.filter((form) => !share || form.shareable) ?? []
  const form = forms.find((one) => one.id === chosen) ?? forms[0]
  return (
    <Dialog title={text.export.title} onClose={onClose}>
      <div className="space-y-4 overflow-y-auto p-5">
        {error ? <Failed error={error} retry={() => void refetch()} /> : !data && <Loading rows={4} />}
        {form && (
          <>
            <fieldset>
              <legend className="sr-only">{text.export.format}</legend>
              {forms.map((one) => (
                <label
                  key={one.id}
                  className="flex min-h-11 cursor-pointer items-start gap-3 rounded-lg px-2 py-1.5 text-sm hover:bg-hover"
                >
                  <input
                    type="radio"
                    name="format"
                    value={one.id}
                    checked={one.id === form.id}
                    onChange={() => setChosen(one.id)}
                    className="mt-0.5 size-4 shrink-0 accent-accent"
                  />
                  <span>
                    <span className="font-medium">{one.id}</span> <span className="text-muted">{one.words}</span>
                    {one.id === form.id && <Preserved form={one} />}
                  </span>
                </label>
              ))}
            </fieldset>
            <label className="flex min-h-9 cursor-pointer items-center gap-3 px-2 text-sm">
              <input
                type="checkbox"
                checked={share}
                onChange={(event) => setShare(event.target.checked)}
                className="size-4 shrink-0 accent-accent"
              />
              {text.export.redact}
            </label>
            <div className="flex justify-end gap-2">
              <Button onClick={onClose}>{text.common.cancel}</Button>
              <Button
                look="primary"
                onClick={() => {
                  download(
                    address(`/conversations/${encodeURIComponent(conversation)}/export`, { format: form.id, share }),
                  )
                  onClose()
                }}
              >
                {text.common.download}
              </Button>
            </div>
          </>
        )}
      </div>
    </Dialog>
  )
}

function Preserved({ form }: { form: ExportFormat }) {
  if (!form.kept.length) return null
  return (
    <span className="mt-0.5 block text-xs text-muted">
      {text.export.keeps(form.kept)}
      {form.approximated.length > 0 && text.export.converts(form.approximated)}
    </span>
  )
}

function download(url: string) {
  const link = document.createElement('a')
  link.href = url
  link.download = ''
  link.click()
}
