import { type FormEvent, useState } from 'react'
import { type SkillDetail, useSkillActions } from '@/data/skills'
import { errorsOf, Text } from '@/settings/FormParts'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { Failed } from '@/ui/States'

const words = text.skills

/** A form to create a skill in moot's home folder, or to change the description and instructions of one. */
export function SkillForm(given: { skill: SkillDetail | null; onClose: () => void }) {
  const [skill] = useState(given.skill) // later fetches must not replace the skill that is being edited
  const { onClose } = given
  const { create, rewrite } = useSkillActions()
  const { errors, rest } = errorsOf(create.error ?? rewrite.error, ['name', 'description', 'body'])

  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const entered = new FormData(event.currentTarget)
    const value = (name: string) =>
      String(entered.get(name) ?? '')
        .replaceAll('\r\n', '\n')
        .trim()
    const fields = { description: value('description'), body: value('body') }
    if (skill) rewrite.mutate({ name: skill.name, digest: skill.digest, ...fields }, { onSuccess: onClose })
    else create.mutate({ name: value('name'), ...fields }, { onSuccess: onClose })
  }

  return (
    <form onSubmit={submit} className="space-y-4 overflow-y-auto p-5">
      {!skill && <Text name="name" label={text.common.name} about={words.nameHelp} error={errors.name} required />}
      <Text
        name="description"
        label={words.description}
        about={words.descriptionHelp}
        value={skill?.description}
        error={errors.description}
        rows={2}
      />
      <Text name="body" label={words.instructions} value={skill?.body} error={errors.body} rows={12} />
      {rest && <Failed error={rest} />}
      <div className="flex justify-end gap-2 pt-1">
        <Button look="quiet" onClick={onClose}>
          {text.common.cancel}
        </Button>
        <Button type="submit" look="primary" disabled={create.isPending || rewrite.isPending}>
          {skill ? text.common.save : words.create}
        </Button>
      </div>
    </form>
  )
}
