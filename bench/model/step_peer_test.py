"""The peer's step computes the loss and the gradients of the model that it says it runs."""

import json
import os
import tempfile
import unittest

import torch

import step_peer

SMALL = {
    "model_type": "qwen3",
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "intermediate_size": 48,
    "vocab_size": 50,
    "tie_word_embeddings": False,
}


class StepPeerTest(unittest.TestCase):
    def setUp(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "config.json")
            with open(path, "w") as file:
                json.dump(SMALL, file)
            self.model = step_peer.make_model(path, "cpu", torch.float32)
        generator = torch.Generator().manual_seed(1)
        self.sequences = [torch.randint(0, 50, (length,), generator=generator) for length in (9, 2, 30)]

    def expected(self):
        self.model.zero_grad()
        total = sum(
            torch.nn.functional.cross_entropy(self.model(tokens[None]).logits[0, :-1], tokens[1:], reduction="sum")
            for tokens in self.sequences
        )
        loss = total / sum(len(tokens) - 1 for tokens in self.sequences)
        loss.backward()
        return loss.detach(), [parameter.grad.clone() for parameter in self.model.parameters()]

    def test_loss_and_gradients(self):
        loss, gradients = self.expected()
        step_peer.HEAD_ROWS = 7  # several chunks
        for share in (0, 0.5, 1):
            step = step_peer.Step(self.model, share, compiled=False)
            for _ in range(2):  # the second time the same: nothing is left of the first
                torch.testing.assert_close(step(self.sequences), loss)
                for parameter, gradient in zip(self.model.parameters(), gradients):
                    torch.testing.assert_close(parameter.grad, gradient)
            step.close()

    def test_shares_are_spread_evenly(self):
        self.assertEqual([step_peer.recomputed(i, 0.25) for i in range(8)], ([False] * 3 + [True]) * 2)
        for share, count in ((0, 0), (0.5, 18), (1, 36)):
            self.assertEqual(sum(step_peer.recomputed(i, share) for i in range(36)), count)


if __name__ == "__main__":
    unittest.main()
