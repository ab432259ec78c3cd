"""A denoising autoencoder for Lightning with optimization by hand for the two parts, and a data module."""

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, random_split
from torchvision import datasets, transforms


class Images(L.LightningDataModule):
    def __init__(self, root, batch_size=128):
        super().__init__()
        self.root, self.batch_size = root, batch_size

    def setup(self, stage=None):
        full = datasets.FashionMNIST(self.root, train=True, transform=transforms.ToTensor())
        self.train_set, self.val_set = random_split(full, [55_000, 5_000])

    def train_dataloader(self):
        return DataLoader(
            self.train_set, self.batch_size, shuffle=True, num_workers=4, pin_memory=True, persistent_workers=True
        )

    def val_dataloader(self):
        return DataLoader(self.val_set, self.batch_size, num_workers=4, pin_memory=True, persistent_workers=True)


class AdversarialAutoencoder(L.LightningModule):
    def __init__(self, latent=16, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 256), nn.ReLU(), nn.Linear(256, 784), nn.Sigmoid())
        self.critic = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 1))
        self.validation_losses = []

    def training_step(self, batch, batch_idx):
        images, _ = batch
        opt_ae, opt_critic = self.optimizers()
        noise = 0.2 * torch.randn_like(images)

        code = self.encoder(images + noise)
        reconstruction = self.decoder(code)
        ae_loss = F.mse_loss(reconstruction, images.flatten(1)) - 0.01 * self.critic(code).mean()
        opt_ae.zero_grad()
        self.manual_backward(ae_loss)
        opt_ae.step()

        prior = torch.randn_like(code)
        critic_loss = self.critic(code.detach()).mean() - self.critic(prior).mean()
        opt_critic.zero_grad()
        self.manual_backward(critic_loss)
        opt_critic.step()

        self.log_dict({"train/ae": ae_loss, "train/critic": critic_loss})

    def validation_step(self, batch, batch_idx):
        images, _ = batch
        loss = F.mse_loss(self.decoder(self.encoder(images)), images.flatten(1))
        self.validation_losses.append(loss)

    def on_validation_epoch_end(self):
        self.log("val/loss", torch.stack(self.validation_losses).mean())
        self.validation_losses.clear()

    def configure_optimizers(self):
        autoencoder = [*self.encoder.parameters(), *self.decoder.parameters()]
        return (
            torch.optim.Adam(autoencoder, lr=self.hparams.lr),
            torch.optim.RMSprop(self.critic.parameters(), lr=self.hparams.lr / 2),
        )


if __name__ == "__main__":
    trainer = L.Trainer(max_epochs=20, accelerator="gpu", devices=1, log_every_n_steps=50)
    trainer.fit(AdversarialAutoencoder(), Images("data"))
